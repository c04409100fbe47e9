#!lua
-- Sets the tally of a question from the record, unless the stored tally is newer.
-- KEYS[1]  the tally
-- KEYS[2]  its owners
-- ARGV     [1] offset of the tally; [2] time of the last prediction; [3] alternating lines of an
--          owner and its forecasts, in one text, because 50,000 owners would be 100,000 arguments;
--          then pairs of (field, count)
-- returns  1 if set, 0 if the stored tally is newer
local call = redis.call
local at = tonumber(call('HGET', KEYS[1], 'o') or nil)
if at ~= nil and at > tonumber(ARGV[1]) then return 0 end
call('DEL', KEYS[1], KEYS[2])
call('HSET', KEYS[1], 'o', ARGV[1], 't', ARGV[2])
for n = 4, #ARGV, 2 do call('HSET', KEYS[1], ARGV[n], ARGV[n + 1]) end
for owner, said in string.gmatch(ARGV[3], '([^\n]+)\n([^\n]*)\n') do call('HSET', KEYS[2], owner, said) end
return 1
