#!lua
-- Counts forecasts into the tallies of questions, each event once. All keys share one hash tag.
-- KEYS     [1] the mark of the tag; then per question its tally and its owners. A tally has counts
--          by field (tally.ts), 'o', the offset of the last counted event, and 't', the time of the
--          newest forecast. The owners have the forecasts of each owner
-- ARGV     [1] the lowest valid mark: below it, the tallies are older than the caller has seen;
--          then per question the number of its events, and per event, by rising offset: offset,
--          time, owner, the forecast before a revision or '', the forecast now, and the increase
--          of each option, separated by commas
-- returns  per question 1, or 0 if it has no tally, which must be set from the record first; null
--          if the mark is lower
local call = redis.call
local answers, arg = {}, 2
if tonumber(call('GET', KEYS[1]) or -1) < tonumber(ARGV[1]) then return false end

local function move(tally, field, by)
  return call('HINCRBY', tally, field, by)
end

-- Adds (sign 1) or removes (-1) a prediction of an owner who has `size`. Adding 0 makes 0 of -0.
local function add(tally, said, size, sign)
  local family, side, value, log_odds, option_odds, chances =
    string.match(said, '^([^|]+)|([^|]+)|(%d+)|(-?%d+)|?([^|]*)|?([^|]*)$')
  local cell = family .. '|' .. side .. '|' .. size
  local left = move(tally, cell .. '|n', sign)
  move(tally, cell .. '|v', sign * value + 0)
  move(tally, cell .. '|x', sign * log_odds + 0)
  if left == 0 then call('HDEL', tally, cell .. '|n', cell .. '|v', cell .. '|x') end
  if move(tally, value, sign) == 0 then call('HDEL', tally, value) end
  -- With options: the log odds and the share of each option. A missing field is 0.
  local n = 0
  for x in string.gmatch(option_odds, '[^,]+') do
    local field = family .. '|' .. n .. '|' .. size
    if move(tally, field, sign * x + 0) == 0 then call('HDEL', tally, field) end
    n = n + 1
  end
  n = 0
  for chance in string.gmatch(chances, '[^,]+') do
    local field = n .. '/' .. chance
    if move(tally, field, sign) == 0 then call('HDEL', tally, field) end
    n = n + 1
  end
end

local function addMix(tally, all, sign)
  if #all == 0 then return end
  local counts, parts = {}, {}
  for _, said in ipairs(all) do
    local family = string.match(said, '^[^|]*')
    counts[family] = (counts[family] or 0) + 1
  end
  for family, count in pairs(counts) do parts[#parts + 1] = family .. ':' .. count end
  table.sort(parts)
  local field = table.concat(parts, ',')
  if move(tally, field, sign) == 0 then call('HDEL', tally, field) end
end

-- All predictions of an owner share one weight, so a new one moves the earlier ones.
local function place(tally, all, said)
  local size = #all
  addMix(tally, all, -1)
  for _, one in ipairs(all) do
    add(tally, one, size, -1)
    add(tally, one, size + 1, 1)
  end
  add(tally, said, size + 1, 1)
  all[size + 1] = said
  addMix(tally, all, 1)
  return true
end

local function revise(tally, all, was, said)
  for n, one in ipairs(all) do
    if one == was then
      all[n] = said
      add(tally, was, #all, -1)
      add(tally, said, #all, 1)
      return true
    end
  end
  return false
end

-- Returns false if the owner is not known to have the forecast that is revised.
local function count(tally, owners, owner, was, said, given)
  local all = {}
  for one in string.gmatch(call('HGET', owners, owner) or '', '%S+') do all[#all + 1] = one end
  local is_done
  if was == '' then is_done = place(tally, all, said) else is_done = revise(tally, all, was, said) end
  if not is_done then return false end
  call('HSET', owners, owner, table.concat(all, ' '))
  local family, n = string.match(said, '^[^|]*'), 0
  for units in string.gmatch(given, '[^,]+') do
    move(tally, family .. '|' .. n, units)
    n = n + 1
  end
  return true
end

for k = 2, #KEYS, 2 do
  local tally, owners, events = KEYS[k], KEYS[k + 1], tonumber(ARGV[arg])
  local offset, newest = unpack(call('HMGET', tally, 'o', 't'))
  local at = tonumber(offset or nil)
  local last = arg + 6 * events
  for n = arg + 1, last, 6 do
    if at ~= nil and tonumber(ARGV[n]) > at then
      if count(tally, owners, ARGV[n + 2], ARGV[n + 3], ARGV[n + 4], ARGV[n + 5]) then
        -- An imported forecast may be older than the one before. The texts sort like their times.
        if ARGV[n + 1] > newest then newest = ARGV[n + 1] end
        call('HSET', tally, 'o', ARGV[n], 't', newest)
      else
        call('DEL', tally, owners)
        at = nil
      end
    end
  end
  answers[#answers + 1] = at == nil and 0 or 1
  arg = last + 1
end
return answers
