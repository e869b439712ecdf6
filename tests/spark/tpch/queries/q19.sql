-- What did three kinds of parts bring that a plane or drone handed over?
SELECT sum(l_extendedprice * (1 - l_discount)) AS brought
FROM lineitem, part
WHERE p_partkey = l_partkey
  AND l_shipmode IN ('PLANE', 'DRONE') AND l_shipinstruct = 'HAND OVER'
  AND (
    (p_brand = 'Make#12' AND p_container IN ('SMALL BOX', 'SMALL BAG', 'SMALL CRATE')
      AND l_quantity BETWEEN 1 AND 15 AND p_size BETWEEN 1 AND 10)
    OR (p_brand = 'Make#23' AND p_container IN ('MIDDLE BAG', 'MIDDLE BOX', 'MIDDLE JAR')
      AND l_quantity BETWEEN 10 AND 25 AND p_size BETWEEN 1 AND 20)
    OR (p_brand = 'Make#34' AND p_container IN ('LARGE CAN', 'LARGE BOX', 'LARGE TUBE')
      AND l_quantity BETWEEN 20 AND 35 AND p_size BETWEEN 1 AND 30)
  )
