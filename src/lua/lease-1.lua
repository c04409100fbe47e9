#!lua
-- Admits several calls of one caller ahead of time. They count from the last moment at which they
-- may be used, so that a sliding window never holds more than its limit; what was not used is given
-- back. Only a part of what is left is lent, so that near the limit every call is asked for alone.
-- KEYS    [1] the list of a window, as in windows-n.lua: times in ms, oldest first
-- ARGV    [1] limit [2] window in ms [3] calls wanted [4] ms for which they may be used
--         [5] calls to give back and [6] their time, both 0 for none
-- returns one text of numbers with commas: calls admitted, their time, calls left besides, and ms
--         until the oldest call grows old. A repeat after a lost answer lends twice at most, and
--         that grows old like every call.
local call = redis.call
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local name, limit, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])

if ARGV[5] ~= '0' then call('LREM', name, -tonumber(ARGV[5]), ARGV[6]) end

-- The list is trimmed by whoever asks for one call; here the old ones are only not counted.
local n, old, young = call('LLEN', name), 0, 0
young = n + 1
while young - old > 1 do
  local middle = math.floor((old + young) / 2)
  local is_old = tonumber(call('LINDEX', name, middle - 1)) <= now - window
  if is_old then old = middle else young = middle end
end
if old > 0 then call('LTRIM', name, old, -1) end
local free = limit - (n - old)
local lent = math.min(tonumber(ARGV[3]), math.floor(free / 4))
if lent < 8 then lent = 0 end
local stamp = math.max(now + tonumber(ARGV[4]), tonumber(call('LINDEX', name, -1) or 0))
-- As a text, made once: a number would be written out for each of them.
local from, text = 0, string.format('%.0f', stamp)
while from < lent do
  local times = {}
  for k = 1, math.min(4000, lent - from) do times[k] = text end
  call('RPUSH', name, unpack(times))
  from = from + #times
end
redis.call('PEXPIRE', name, 2 * window)
local first = tonumber(call('LINDEX', name, 0) or now)
return string.format('%d,%.0f,%d,%.0f', lent, stamp, math.max(0, free - lent), first + window - now)
