#!lua
-- Sets the tally of a question from the record, unless the one there is newer.
-- KEYS[1]  the tally
-- ARGV     [1] offset it stands at; [2] time of the last prediction; then pairs of (field, count)
-- returns  1 when set, 0 when the one there is newer
local at = tonumber(redis.call('HGET', KEYS[1], 'o'))
if at ~= nil and at > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'o', ARGV[1], 't', ARGV[2])
for n = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[n], ARGV[n + 1]) end
return 1
