-- How many suppliers, none complained of, could deliver parts of certain makes and sizes?
SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS suppliers
FROM part JOIN partsupp ON ps_partkey = p_partkey
WHERE p_brand != 'Make#45' AND NOT startswith(p_type, 'RARE MILLED')
  AND p_size IN (3, 9, 14, 19, 23, 36, 45, 49)
  AND ps_suppkey NOT IN (
    SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%customers%complaints%'
  )
GROUP BY p_brand, p_type, p_size
ORDER BY suppliers DESC, p_brand, p_type, p_size
