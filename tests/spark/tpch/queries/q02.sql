-- Which suppliers of a region sell parts of one size and metal at the lowest price there?
WITH offers AS (
  SELECT ps_partkey, ps_supplycost, s_suppkey, s_name, s_acctbal, s_phone, n_name,
         min(ps_supplycost) OVER (PARTITION BY ps_partkey) AS lowest
  FROM partsupp
  JOIN supplier ON s_suppkey = ps_suppkey
  JOIN nation ON n_nationkey = s_nationkey
  JOIN region ON r_regionkey = n_regionkey AND r_name = 'EUROPE'
)
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_phone, ps_supplycost
FROM offers JOIN part ON p_partkey = ps_partkey
WHERE ps_supplycost = lowest AND p_size = 15 AND p_type LIKE '%IRON'
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey
LIMIT 100
