-- What share of a region's trade in one type of part has a nation, in two years?
SELECT year(o_orderdate) AS year,
       sum(worth) FILTER (WHERE seller = 'BRAZIL') / sum(worth) AS share
FROM (
  SELECT o_orderdate, l_extendedprice * (1 - l_discount) AS worth, sold.n_name AS seller
  FROM part
  JOIN lineitem ON l_partkey = p_partkey
  JOIN orders ON o_orderkey = l_orderkey
  JOIN customer ON c_custkey = o_custkey
  JOIN nation bought ON bought.n_nationkey = c_nationkey
  JOIN region ON r_regionkey = bought.n_regionkey
  JOIN supplier ON s_suppkey = l_suppkey
  JOIN nation sold ON sold.n_nationkey = s_nationkey
  WHERE p_type = 'LIGHT FORGED ZINC' AND r_name = 'AMERICA' AND year(o_orderdate) IN (1995, 1996)
)
GROUP BY 1
ORDER BY 1
