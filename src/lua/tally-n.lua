#!lua
-- Counts predictions into the tallies of questions that share a hash tag, each event once.
-- KEYS     tallies: hashes of count by field; 'o' is the offset of the last event counted, 't' its
--          time
-- ARGV     for each key: number of its events, then triples (offset, time, field), offsets growing
-- returns  for each key 1, or 0 when there is no tally: it has to be set from the record first
local call = redis.call
local answers, arg = {}, 1
for k = 1, #KEYS do
  local name, last = KEYS[k], arg + 3 * tonumber(ARGV[arg])
  local at = tonumber(call('HGET', name, 'o'))
  if at == nil then
    answers[k] = 0
  else
    local reached, time = at, nil
    for n = arg + 1, last, 3 do
      local offset = tonumber(ARGV[n])
      if offset > reached then
        call('HINCRBY', name, ARGV[n + 2], 1)
        reached, time = offset, ARGV[n + 1]
      end
    end
    if time ~= nil then call('HSET', name, 'o', reached, 't', time) end
    answers[k] = 1
  end
  arg = last + 1
end
return answers
