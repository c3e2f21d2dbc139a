# table.jq - the summary for a reader

def short: if . == null then "-" elif (fabs) >= 100 then (round | tostring) else (. * 1000 | round / 1000 | tostring) end;

["PART", "SUBJECT", "METRIC", "MIN", "MEDIAN", "MAX"],
(.results[] | [.part, .subject, .metric, (.min | short), (.median | short), (.max | short)]),
[""],
["LIMIT", "", "", "VALUE", "AT MOST", ""],
(.limits[] | [.what, "", "", (.value | short), (.limit | short), (if .met then "met" else "MISSED" end)])
| @tsv
