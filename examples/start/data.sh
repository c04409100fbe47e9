# Forecasts on resolved questions, with their scores, as CSV.
curl -sS 'http://127.0.0.1:8080/api/export/predictions?format=csv&status=resolved' -o predictions.csv

# The mean Brier score of each model family on yes/no questions, with DuckDB. The leaderboard also has
# questions with options, and counts a family once per question.
duckdb -c "select model_family, count(*) as n, avg(brier) as brier from 'predictions.csv'
           where question_type = 'binary' group by 1 order by 3"
