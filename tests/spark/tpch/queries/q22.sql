-- Where do customers live who have money, but never ordered?
WITH callers AS (
  SELECT c_custkey, c_acctbal, left(c_phone, 2) AS code
  FROM customer
  WHERE left(c_phone, 2) IN ('13', '17', '18', '23', '29', '30', '31')
)
SELECT code, count(*) AS customers, sum(c_acctbal) AS balance
FROM callers
WHERE c_acctbal > (SELECT avg(c_acctbal) FROM callers WHERE c_acctbal > 0)
  AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)
GROUP BY code
ORDER BY code
