#!lua
-- What is left of sliding windows, without taking anything. A call that was admitted can be given
-- back first; one that is no longer in the list changes nothing.
-- KEYS    one list a window: the times of admitted calls in ms, oldest first
-- ARGV    three for each key: limit, window in ms, time of the call to give back or 0
-- returns one text of numbers with commas, for each key: the calls left, and ms until the oldest
--         call that counts grows old, 0 where none does. Redis gives the time.
local call = redis.call
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answers = {}

-- How many of a list of n are too old to count. The distance doubles, then halves: where little is
-- old, as right after a call was admitted, that is one look.
local function countOld(name, n, limit)
  local low, high = 0, 1
  local function isOld(nth) return tonumber(call('LINDEX', name, nth - 1)) <= limit end
  while high <= n and isOld(high) do low, high = high, high * 2 end
  high = math.min(high, n + 1)
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if isOld(middle) then low = middle else high = middle end
  end
  return low
end

for k = 1, #KEYS do
  local limit, window = tonumber(ARGV[3 * k - 2]), tonumber(ARGV[3 * k - 1])
  if ARGV[3 * k] ~= '0' then call('LREM', KEYS[k], -1, ARGV[3 * k]) end
  local n = call('LLEN', KEYS[k])
  local old = countOld(KEYS[k], n, now - window)
  answers[2 * k - 1] = math.max(limit - (n - old), 0)
  answers[2 * k] = old == n and 0 or tonumber(call('LINDEX', KEYS[k], old)) + window - now
end
return table.concat(answers, ',')
