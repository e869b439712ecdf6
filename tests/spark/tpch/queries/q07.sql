-- What was shipped between two nations, in either direction, year by year?
WITH pair AS (SELECT n_nationkey, n_name FROM nation WHERE n_name IN ('FRANCE', 'GERMANY'))
SELECT sender.n_name AS sender, receiver.n_name AS receiver, extract(YEAR FROM l_shipdate) AS year,
       sum(l_extendedprice * (1 - l_discount)) AS shipped
FROM lineitem
JOIN supplier ON s_suppkey = l_suppkey
JOIN pair sender ON sender.n_nationkey = s_nationkey
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey
JOIN pair receiver ON receiver.n_nationkey = c_nationkey
WHERE sender.n_nationkey <> receiver.n_nationkey
  AND l_shipdate >= DATE '1995-01-01' AND l_shipdate < DATE '1997-01-01'
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3
