#!lua
-- Adds counted calls to the statistics of agents.
-- KEYS    one hash per agent. Its fields: `since`; `last` and `error`, texts that start with a
--         time; and per hour, as a number, `<hour>:calls` and `<hour>:<error code>`
-- ARGV    [1] the time, for `since`; [2] the oldest hour to keep; [3] seconds to keep a hash;
--         then per key a JSON object: `add`, counts by field, and `put`, texts by field
-- returns nothing
-- Processes write in any order, so the later of two texts stays. Old hours are deleted only when a
-- field is new, which is rare.
local call = redis.call
for n, key in ipairs(KEYS) do
  local counted = cjson.decode(ARGV[n + 3])
  local is_new = false
  for field, count in pairs(counted.add) do
    if call('HINCRBY', key, field, count) == count then is_new = true end
  end
  for field, text in pairs(counted.put) do
    local known = call('HGET', key, field)
    if not known or known < text then call('HSET', key, field, text) end
  end
  if is_new then
    call('HSETNX', key, 'since', ARGV[1])
    for _, field in ipairs(call('HKEYS', key)) do
      local hour = tonumber(string.match(field, '^(%d+):'))
      if hour and hour < tonumber(ARGV[2]) then call('HDEL', key, field) end
    end
  end
  call('EXPIRE', key, ARGV[3])
end
