-- How many orders of a quarter had a line that came later than promised, by priority?
SELECT o_orderpriority, count(*) AS late
FROM orders
WHERE date_trunc('QUARTER', o_orderdate) = DATE '1993-07-01'
  AND o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE l_receiptdate > l_commitdate)
GROUP BY ALL
ORDER BY o_orderpriority
