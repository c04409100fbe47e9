#!lua
-- Appends events to the log stream, in order, without a hole and without a repeat.
-- KEYS[1]  the stream
-- ARGV     [1] offset of the last entry that must be in the stream now; 'empty' when it must be
--          empty; [2] most entries kept; then for each event: offset, h, b
-- returns  -1 when appended, else the offset of the last entry that is there (0 when empty)
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local at = 0
if #last > 0 then at = tonumber(string.match(last[1][1], '^(%d+)')) end
if ARGV[1] == 'empty' then
  if #last > 0 then return at end
  -- Emptied by hand, it would still refuse ids that it once had.
  redis.call('DEL', KEYS[1])
elseif at ~= tonumber(ARGV[1]) then
  return at
end
local call, key = redis.call, KEYS[1]
for from = 3, #ARGV, 3 do
  call('XADD', key, ARGV[from] .. '-0', 'h', ARGV[from + 1], 'b', ARGV[from + 2])
end
-- Once, because an XADD that trims as well is a sixth dearer.
call('XTRIM', key, 'MAXLEN', '~', ARGV[2])
return -1
