-- How many customers have placed how many orders, not counting those with unusual wishes?
SELECT placed, count(*) AS customers
FROM (
  SELECT c_custkey, count(o_orderkey) AS placed
  FROM customer
  LEFT JOIN (SELECT * FROM orders WHERE o_comment NOT LIKE '%unusual%parcels%')
    ON o_custkey = c_custkey
  GROUP BY c_custkey
)
GROUP BY placed
ORDER BY customers DESC, placed DESC
