#!lua
-- Counts predictions into the tallies of questions that share a hash tag, each event once.
-- KEYS     tallies: hashes of count by field; 'o' is the offset of the last event counted, 't' its
--          time
-- ARGV     for each key: number of its events, time of the last, then pairs (offset, field), offsets
--          growing
-- returns  for each key 1, or 0 when there is no tally: it has to be set from the record first
local call, format = redis.call, string.format
local answers, arg = {}, 1

-- A tally is read once and written once, however many events there are.
local function count(name, at, first, last, time)
  local fields, more = {}, {}
  for n = first, last, 2 do
    if tonumber(ARGV[n]) > at then
      local field = ARGV[n + 1]
      if more[field] == nil then fields[#fields + 1] = field end
      more[field] = (more[field] or 0) + 1
    end
  end
  if #fields == 0 then return end
  local before = call('HMGET', name, unpack(fields))
  local put = { 'o', ARGV[last], 't', time }
  for n, field in ipairs(fields) do
    put[2 * n + 3] = field
    put[2 * n + 4] = format('%d', (before[n] or 0) + more[field])
  end
  call('HSET', name, unpack(put))
end

for k = 1, #KEYS do
  local events = tonumber(ARGV[arg])
  local at = tonumber(call('HGET', KEYS[k], 'o'))
  if at ~= nil then count(KEYS[k], at, arg + 2, arg + 2 * events, ARGV[arg + 1]) end
  answers[k] = at == nil and 0 or 1
  arg = arg + 2 + 2 * events
end
return answers
