#!lua
-- Counts predictions into the tallies of questions that share a hash tag, each event once.
-- KEYS     for each question its tally and its owners; the tally has counts by field, 'o' is the
--          offset of the last event counted, 't' its time; owners have what each said
-- ARGV     for each question the number of its events, then for each event, offsets growing: offset,
--          time, owner, what is said, and what each option is given, with commas between
-- returns  for each question 1, or 0 when there is no tally: it has to be set from the record first
local call = redis.call
local answers, arg = {}, 1

local function move(tally, said, size, by)
  local field = said .. '|' .. size
  if call('HINCRBY', tally, field, by) == 0 then call('HDEL', tally, field) end
end

-- All predictions of an owner share one weight: another one moves those before it.
local function count(tally, owners, owner, said, given)
  local before = call('HGET', owners, owner) or ''
  local size = 1
  for _ in string.gmatch(before, '%S+') do size = size + 1 end
  for one in string.gmatch(before, '%S+') do
    move(tally, one, size - 1, -1)
    move(tally, one, size, 1)
  end
  move(tally, said, size, 1)
  call('HSET', owners, owner, size == 1 and said or before .. ' ' .. said)
  local family, n = string.match(said, '^[^|]*'), 0
  for units in string.gmatch(given, '[^,]+') do
    call('HINCRBY', tally, family .. '|' .. n, units)
    n = n + 1
  end
end

for k = 1, #KEYS, 2 do
  local tally, events = KEYS[k], tonumber(ARGV[arg])
  local at = tonumber(call('HGET', tally, 'o') or nil)
  local last = arg + 5 * events
  for n = arg + 1, last, 5 do
    if at ~= nil and tonumber(ARGV[n]) > at then
      count(tally, KEYS[k + 1], ARGV[n + 2], ARGV[n + 3], ARGV[n + 4])
      call('HSET', tally, 'o', ARGV[n], 't', ARGV[n + 1])
    end
  end
  answers[#answers + 1] = at == nil and 0 or 1
  arg = last + 1
end
return answers
