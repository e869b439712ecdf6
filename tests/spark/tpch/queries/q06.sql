-- What would a year's small orders have brought without their discounts?
SELECT sum(l_extendedprice * l_discount) AS forgone
FROM lineitem
WHERE l_shipdate BETWEEN DATE '1994-01-01' AND DATE '1994-12-31'
  AND l_discount >= 0.05 AND l_discount <= 0.07 AND l_quantity < 24
