-- Who was the best supplier of a quarter?
WITH earned AS (
  SELECT l_suppkey, sum(l_extendedprice * (1 - l_discount)) AS total
  FROM lineitem
  WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
  GROUP BY l_suppkey
),
best AS (SELECT max(total) AS total FROM earned)
SELECT s_suppkey, s_name, s_address, s_phone, total
FROM earned JOIN best USING (total) JOIN supplier ON s_suppkey = l_suppkey
ORDER BY s_suppkey
