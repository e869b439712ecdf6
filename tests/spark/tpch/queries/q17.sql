-- What would be lost in a year if small orders of one part were refused?
WITH wanted AS (
  SELECT l_partkey, l_quantity, l_extendedprice
  FROM lineitem JOIN part ON p_partkey = l_partkey
  WHERE p_brand = 'Make#23' AND p_container LIKE '%BOX'
)
SELECT sum(w.l_extendedprice) / 7.0 AS yearly
FROM wanted w
WHERE w.l_quantity < (
  SELECT 0.2 * avg(l.l_quantity) FROM lineitem l WHERE l.l_partkey = w.l_partkey
)
