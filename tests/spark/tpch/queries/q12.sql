-- Do cheaper ways of shipping make urgent orders late? Two ways in one year.
SELECT l_shipmode,
       count_if(o_orderpriority IN ('1-NOW', '2-SOON')) AS urgent,
       count_if(o_orderpriority NOT IN ('1-NOW', '2-SOON')) AS others
FROM lineitem JOIN orders ON o_orderkey = l_orderkey
WHERE l_shipmode IN ('BARGE', 'VESSEL')
  AND l_shipdate < l_commitdate AND l_commitdate < l_receiptdate
  AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
GROUP BY l_shipmode
ORDER BY l_shipmode
