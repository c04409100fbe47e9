# Every forecast on resolved questions, with its scores, as CSV.
curl -sS 'http://127.0.0.1:8080/api/export/predictions?format=csv&status=resolved' -o predictions.csv

# The mean Brier score of each model family, with DuckDB.
duckdb -c "select model_family, count(*) as n, avg(brier) as brier
           from 'predictions.csv' group by 1 order by 3"
