-- What part of a month's revenue came from parts on offer, in percent?
SELECT 100 * sum(CASE WHEN startswith(p_type, 'OFFER') THEN worth ELSE 0 END) / sum(worth) AS percent
FROM (
  SELECT l_partkey, l_extendedprice * (1 - l_discount) AS worth
  FROM lineitem
  WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'
)
JOIN part ON p_partkey = l_partkey
