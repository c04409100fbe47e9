#!lua
-- Sets the tally of a question from the record, unless the one there is newer.
-- KEYS[1]  the tally
-- KEYS[2]  its owners
-- ARGV     [1] offset it stands at; [2] time of the last prediction; [3] number of its fields; then
--          pairs of (field, count), then pairs of (owner, what the owner said)
-- returns  1 when set, 0 when the one there is newer
local call = redis.call
local at = tonumber(call('HGET', KEYS[1], 'o') or nil)
if at ~= nil and at > tonumber(ARGV[1]) then return 0 end
call('DEL', KEYS[1], KEYS[2])
call('HSET', KEYS[1], 'o', ARGV[1], 't', ARGV[2])
local last = 3 + 2 * tonumber(ARGV[3])
for n = 4, #ARGV, 2 do call('HSET', n < last and KEYS[1] or KEYS[2], ARGV[n], ARGV[n + 1]) end
return 1
