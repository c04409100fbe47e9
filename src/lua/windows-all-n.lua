#!lua
-- Admits many calls of sliding windows at once: all of them, or none where one might be refused or
-- something is not as the caller remembers it; those are asked for by windows-n.lua.
-- KEYS    lists as there: first those that the caller remembers, which take one call each
-- ARGV    [1] how many lists are remembered; [2] from when on something in them may be old; [3] the
--         newest time in them; for each of them its length with the call, and its limit; for each
--         other list its calls, the lowest of their limits, and the window in ms
-- returns one text of numbers with commas: the time of the calls, and that of Redis; how many of the
--         remembered lists are longer than that, with number and length of each; for each other
--         list its length before, and the age of its oldest call. Empty where none is admitted.
local call = redis.call
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known, stamp = tonumber(ARGV[1]), math.max(now, tonumber(ARGV[3]))
if known > 0 and now >= tonumber(ARGV[2]) then return '' end
local ages, longer, arg = {}, {}, 4 + 2 * known
local most_cut = 8

-- Its length, and the age of its oldest call that counts; nothing where too much of it is old.
local function read(name, window)
  local n = call('LLEN', name)
  if n == 0 then return 0, 0 end
  local head, old = call('LRANGE', name, 0, most_cut), 0
  local last = tonumber(head[n] or call('LINDEX', name, -1))
  if last <= now - window then
    call('DEL', name)
    return 0, 0
  end
  while old < #head and tonumber(head[old + 1]) <= now - window do old = old + 1 end
  if old > 0 then
    call('LPOP', name, old)
    redis.call('PEXPIRE', name, 2 * window)
  end
  -- The last one counts, so there is more of it, and it is for windows-n.lua.
  if old == #head then return end
  -- Calls that were lent (lease-1.lua) are a bit ahead, and nothing comes before them.
  if last > stamp then stamp = last end
  return n - old, now - tonumber(head[old + 1])
end

for l = known + 1, #KEYS do
  local n, age = read(KEYS[l], tonumber(ARGV[arg + 2]))
  if not n or n + tonumber(ARGV[arg]) > tonumber(ARGV[arg + 1]) then return '' end
  ages[l - known], arg = string.format(',%d,%d', n, age), arg + 3
end
local text = string.format('%.0f', stamp)
for l = 1, known do
  local n, expected = call('RPUSH', KEYS[l], text), tonumber(ARGV[2 + 2 * l])
  if n ~= expected then
    longer[#longer + 1] = string.format(',%d,%d', l, n)
    -- Calls of others are well, unless the list began anew, is full or ends later.
    if n < expected or n > tonumber(ARGV[3 + 2 * l])
      or tonumber(call('LINDEX', KEYS[l], -2)) > stamp then
      for undone = 1, l do call('RPOP', KEYS[undone]) end
      return ''
    end
  end
end
arg = 4 + 2 * known
for l = known + 1, #KEYS do
  local times = {}
  for n = 1, tonumber(ARGV[arg]) do times[n] = text end
  if call('RPUSH', KEYS[l], unpack(times)) == #times then
    redis.call('PEXPIRE', KEYS[l], 2 * tonumber(ARGV[arg + 2]))
  end
  arg = arg + 3
end
local head = string.format('%s,%.0f,%d', text, now, #longer)
return head .. table.concat(longer) .. table.concat(ages)
