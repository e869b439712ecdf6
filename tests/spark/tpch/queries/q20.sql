-- Which suppliers of a nation have far more of a colour's parts than a year takes?
WITH taken AS (
  SELECT l_partkey, l_suppkey, sum(l_quantity) AS quantity
  FROM lineitem
  WHERE year(l_shipdate) = 1994
  GROUP BY l_partkey, l_suppkey
)
SELECT s_name, s_address
FROM supplier JOIN nation ON n_nationkey = s_nationkey AND n_name = 'CANADA'
WHERE s_suppkey IN (
  SELECT ps_suppkey
  FROM partsupp JOIN taken ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
  WHERE ps_availqty > quantity / 2
    AND ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'pale%')
)
ORDER BY s_name
