#!lua
-- Identifies the server run that holds a key. If it changes, the data may be older than before.
-- KEYS[1]  the key
-- ARGV     none
-- returns  the id of the run
return string.match(redis.call('INFO', 'server'), 'run_id:(%S+)')
