-- What profit do parts of one colour make, by the supplier's nation and year?
WITH sold AS (
  SELECT n_name AS nation, year(o_orderdate) AS year,
         l_extendedprice * (1 - l_discount) - l_quantity * ps_supplycost AS profit
  FROM lineitem
  JOIN part ON p_partkey = l_partkey
  JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
  JOIN supplier ON s_suppkey = l_suppkey
  JOIN nation ON n_nationkey = s_nationkey
  JOIN orders ON o_orderkey = l_orderkey
  WHERE contains(p_name, 'plum')
)
SELECT nation, year, sum(profit) AS profit
FROM sold
GROUP BY nation, year
ORDER BY nation ASC, year DESC
