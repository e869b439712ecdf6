-- Which orders that wait for shipment are worth most, in one segment on one day?
SELECT o_orderkey, o_orderdate, o_shippriority,
       sum(l_extendedprice * (1 - l_discount)) AS waiting
FROM orders
JOIN lineitem ON l_orderkey = o_orderkey AND l_shipdate > DATE '1995-03-15'
LEFT SEMI JOIN customer ON c_custkey = o_custkey AND c_mktsegment = 'FARMING'
WHERE o_orderdate < DATE '1995-03-15'
GROUP BY o_orderkey, o_orderdate, o_shippriority
ORDER BY waiting DESC, o_orderdate, o_orderkey
LIMIT 10
