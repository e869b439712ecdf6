-- Which customers placed very large orders?
WITH large AS (
  SELECT l_orderkey, sum(l_quantity) AS quantity
  FROM lineitem
  GROUP BY l_orderkey
  HAVING sum(l_quantity) > 280
)
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, quantity
FROM large
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey
ORDER BY o_totalprice DESC, o_orderdate, o_orderkey
LIMIT 100
