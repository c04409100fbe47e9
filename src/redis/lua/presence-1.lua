#!lua
-- Announces that a process is alive, and removes processes that were silent for too long.
-- KEYS[1]  the processes: until when each of them counts, in ms
-- ARGV     [1] this process; [2] ms for which it counts from now
-- returns  1 if it still counted; 0 if other processes may have dropped its entries
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return known and 1 or 0
