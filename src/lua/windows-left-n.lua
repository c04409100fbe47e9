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

for k = 1, #KEYS do
  local limit, window = tonumber(ARGV[3 * k - 2]), tonumber(ARGV[3 * k - 1])
  if ARGV[3 * k] ~= '0' then call('LREM', KEYS[k], -1, ARGV[3 * k]) end
  local n = call('LLEN', KEYS[k])
  -- Everything up to `old` is older than the window, everything from `young` on counts.
  local old, young = 0, n + 1
  while young - old > 1 do
    local middle = math.floor((old + young) / 2)
    if tonumber(call('LINDEX', KEYS[k], middle - 1)) <= now - window then
      old = middle
    else
      young = middle
    end
  end
  answers[2 * k - 1] = math.max(limit - (n - old), 0)
  answers[2 * k] = young > n and 0 or tonumber(call('LINDEX', KEYS[k], young - 1)) + window - now
end
return table.concat(answers, ',')
