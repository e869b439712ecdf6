-- What was billed, shipped and returned up to a day near the end, by state of the line?
WITH shipped AS (
  SELECT l_returnflag AS flag, l_linestatus AS status, l_quantity AS quantity, l_discount AS discount,
         l_extendedprice AS listed, l_extendedprice * (1 - l_discount) AS reduced, l_tax AS tax
  FROM lineitem
  WHERE l_shipdate <= date_sub(DATE '1998-12-01', 90)
)
SELECT flag, status, sum(quantity) AS quantity, sum(listed) AS listed, sum(reduced) AS reduced,
       sum(reduced * (1 + tax)) AS charged, avg(quantity) AS mean_quantity,
       avg(listed) AS mean_listed, avg(discount) AS mean_discount, count(*) AS lines
FROM shipped
GROUP BY flag, status
ORDER BY flag, status
