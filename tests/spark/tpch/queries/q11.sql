-- Which parts make up a good piece of what a nation's suppliers have in stock?
WITH stock AS (
  SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS worth
  FROM partsupp
  JOIN supplier ON s_suppkey = ps_suppkey
  JOIN nation ON n_nationkey = s_nationkey
  WHERE n_name = 'GERMANY'
  GROUP BY ps_partkey
)
SELECT ps_partkey, worth
FROM stock
WHERE worth > (SELECT sum(worth) * 0.001 FROM stock)
ORDER BY worth DESC, ps_partkey
