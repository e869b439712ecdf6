-- Which suppliers of a nation were the only ones to keep an order of several waiting?
SELECT s_name, count(*) AS kept_waiting
FROM lineitem mine
JOIN orders ON o_orderkey = mine.l_orderkey AND o_orderstatus = 'F'
JOIN supplier ON s_suppkey = mine.l_suppkey
JOIN nation ON n_nationkey = s_nationkey AND n_name = 'SAUDI ARABIA'
WHERE mine.l_receiptdate > mine.l_commitdate
  AND EXISTS (
    SELECT 1 FROM lineitem other
    WHERE other.l_orderkey = mine.l_orderkey AND other.l_suppkey != mine.l_suppkey
  )
  AND NOT EXISTS (
    SELECT 1 FROM lineitem other
    WHERE other.l_orderkey = mine.l_orderkey AND other.l_suppkey != mine.l_suppkey
      AND other.l_receiptdate > other.l_commitdate
  )
GROUP BY s_name
ORDER BY kept_waiting DESC, s_name
LIMIT 100
