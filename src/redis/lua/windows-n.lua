#!lua
-- Exact sliding windows for many calls at once. A refused call consumes nothing.
-- KEYS    one list per window, in the order of the calls: the times of admitted calls in ms, oldest
--         first. A list expires two windows after its newest call.
-- ARGV    [1] number of calls; then per call: the number of its windows w, the action ('take',
--         'look', or the time in ms of an admitted call to give back before looking), and w pairs
--         (limit, window in ms)
-- returns numbers separated by commas. Per call: the window that refused (0 if none) and ms until
--         it would admit the call; then per window the calls left, and ms until its oldest call
--         expires. Last, the time of the calls that were admitted. Redis is the clock.
local call = redis.call
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lists, answers, key, arg = {}, {}, 0, 2
local stamp = now -- Never before the newest call: lists stay sorted if the clock steps back.
-- Counts the calls at the head of a list of n that are too old. The step doubles, then halves.
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
-- Each list is trimmed and read once.
local function read(name, window)
  local n = call('LLEN', name)
  local old = countOld(name, n, now - window)
  if old > 0 then call('LTRIM', name, old, -1) end
  local list = { kept = n - old, new = 0, window = window, oldest = now }
  if list.kept > 0 then
    list.oldest = tonumber(call('LINDEX', name, 0))
    stamp = math.max(stamp, tonumber(call('LINDEX', name, -1)))
  end
  lists[name] = list
  return list
end
-- Calls to give back are removed first, so they count for no call of this script.
local before, at = 0, 2
for _ = 1, tonumber(ARGV[1]) do
  local windows, act = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  for w = 1, act and windows or 0 do call('LREM', KEYS[before + w], -1, ARGV[at + 1]) end
  before, at = before + windows, at + 2 + 2 * windows
end
for nth = 1, tonumber(ARGV[1]) do
  local windows, takes, refused, retry = tonumber(ARGV[arg]), ARGV[arg + 1] == 'take', 0, 0
  for w = 1, windows do
    local name, limit = KEYS[key + w], tonumber(ARGV[arg + 2 * w])
    local window = tonumber(ARGV[arg + 2 * w + 1])
    local list = lists[name] or read(name, window)
    local over = list.kept + list.new - limit
    if takes and over >= 0 then
      -- If the limit was lowered, more than one call has to expire first.
      local decisive = over < list.kept and tonumber(call('LINDEX', name, over)) or now
      if decisive + window - now > retry then refused, retry = w, decisive + window - now end
    end
  end
  local answer = { refused, retry }
  for w = 1, windows do
    local list = lists[KEYS[key + w]]
    if takes and refused == 0 then list.new = list.new + 1 end
    answer[1 + 2 * w] = math.max(tonumber(ARGV[arg + 2 * w]) - list.kept - list.new, 0)
    answer[2 + 2 * w] = list.oldest + list.window - now
  end
  answers[nth], key, arg = table.concat(answer, ','), key + windows, arg + 2 + 2 * windows
end
for name, list in pairs(lists) do
  local times = {}
  for n = 1, list.new do times[n] = string.format('%.0f', stamp) end
  if list.new > 0 then
    call('RPUSH', name, unpack(times))
    redis.call('PEXPIRE', name, 2 * list.window)
  end
end
return table.concat(answers, ',') .. ',' .. string.format('%.0f', stamp)
