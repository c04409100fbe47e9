#!lua
-- Exact sliding windows for many calls at once.
-- KEYS    one list a window: the times of admitted calls in ms, oldest first
-- ARGV    [1] number of calls; then for each call: number of its windows w, and w pairs
--         (limit, window in ms); the windows take KEYS in order
-- returns one text of numbers with commas, for each call: the window that refused (0: admitted)
--         and ms until it would admit, then for each window the calls left and the ms until its
--         oldest grows old; last of all their time. A refused call consumes nothing.
--
-- A list is read once and written once. It is given two windows to live when it begins and whenever
-- something in it was found old, by a refused call too; so nothing in it that counts is lost.
local call = redis.call
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stamp = now -- Not before calls that were lent (lease-1.lua): their times are a bit ahead.
-- Lists that were read: number by name, then one array a property.
local lists, number, names, kept, new, oldest, span, renew = 0, {}, {}, {}, {}, {}, {}, {}
-- How many at the head of a list of n are as old as `limit`; the first one is. The distance
-- doubles, then halves: what piled up while nobody called costs a few looks and one cut.
local function countOld(name, n, limit)
  local low, high = 1, 2
  local function isOld(nth) return tonumber(call('LINDEX', name, nth - 1)) <= limit end
  while high <= n and isOld(high) do low, high = high, high * 2 end
  high = math.min(high, n + 1)
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if isOld(middle) then low = middle else high = middle end
  end
  return low
end
local function read(name, window)
  local n, first, trimmed = call('LLEN', name), now, false
  if n > 0 then
    first = tonumber(call('LINDEX', name, 0))
    local last = n == 1 and first or tonumber(call('LINDEX', name, -1))
    if first <= now - window then
      local old = countOld(name, n, now - window)
      call('LTRIM', name, old, -1)
      n, trimmed, first = n - old, true, tonumber(call('LINDEX', name, 0) or now)
    end
    if n > 0 and last > stamp then stamp = last end
  end
  local l = lists + 1
  lists, number[name], names[l], kept[l], new[l], span[l] = l, l, name, n, 0, window
  oldest[l], renew[l] = first, trimmed or n == 0
  return l
end
local answers, key, arg, format = {}, 0, 2, string.format
for nth = 1, tonumber(ARGV[1]) do
  local windows, refused, retry = tonumber(ARGV[arg]), 0, 0
  for w = 1, windows do
    local limit, window = tonumber(ARGV[arg + 2 * w - 1]), tonumber(ARGV[arg + 2 * w])
    local l = number[KEYS[key + w]] or read(KEYS[key + w], window)
    local over = kept[l] + new[l] - limit
    if over >= 0 then
      -- With a limit that was lowered, more than one admission has to grow old first.
      local decisive = over < kept[l] and tonumber(call('LINDEX', names[l], over)) or now
      if decisive + window - now > retry then refused, retry = w, decisive + window - now end
    end
  end
  -- One format writes several numbers faster than each is turned into a text.
  local answer = format('%d,%d', refused, retry)
  for w = 1, windows do
    local l = number[KEYS[key + w]]
    if refused == 0 then new[l] = new[l] + 1 end
    local left = math.max(tonumber(ARGV[arg + 2 * w - 1]) - kept[l] - new[l], 0)
    answer = format('%s,%d,%d', answer, left, oldest[l] + span[l] - now)
  end
  answers[nth], key, arg = answer, key + windows, arg + 2 * windows + 1
end
local text = format('%.0f', stamp)
for l = 1, lists do
  if new[l] > 0 then
    local times = {}
    for n = 1, new[l] do times[n] = text end
    call('RPUSH', names[l], unpack(times))
  end
  if renew[l] then redis.call('PEXPIRE', names[l], 2 * span[l]) end
end
return table.concat(answers, ',') .. ',' .. text
