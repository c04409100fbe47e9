#!lua
-- Says which run of which server has a key: what it keeps may be older than before when it changes.
-- KEYS[1]  the key
-- ARGV     none
-- returns  the id of the run
return string.match(redis.call('INFO', 'server'), 'run_id:(%S+)')
