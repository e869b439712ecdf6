-- What did suppliers earn with customers of their own nation, in a region and a year?
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS earned
FROM lineitem
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey
JOIN supplier ON s_suppkey = l_suppkey AND s_nationkey = c_nationkey
JOIN nation ON n_nationkey = s_nationkey
WHERE o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
  AND n_regionkey = (SELECT r_regionkey FROM region WHERE r_name = 'ASIA')
GROUP BY n_name
ORDER BY earned DESC
