# table.jq - the summary for a reader

def short:
  if . == null then "-" elif fabs > 1e300 then "?"
  elif fabs >= 100 then (round | tostring) else (. * 1000 | round / 1000 | tostring) end;
def verdict: (if .met == null then "-" elif .met then "met" else "MISSED" end) + (if .sure then "" else "?" end);

["PART", "SUBJECT", "METRIC", "MIN", "MEDIAN", "MAX"],
(.results[] | [.part, .subject, .metric, (.min | short), (.median | short), (.max | short)]),
[""],
["LIMIT", "", "AT MOST", "LOW", "VALUE", "HIGH", ""],
(.limits[] | [.what, "", (.limit, .low, .value, .high | short), verdict])
| @tsv
