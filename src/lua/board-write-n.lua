#!lua
-- Puts agents where they now stand on the boards, all boards at once. An agent without details in a
-- slot is on none of its boards, so that slots where it had none and has none cost nothing.
-- KEYS     [1] head of the boards (hash: gen, day, fence), or of those being made; [2] their details
--          (hash: '<agent> <slot>'); then the boards (sorted sets of agent by key), slot by slot
-- ARGV     [1] generation; [2] fence it must stand at; [3] fence it stands at afterwards; [4] number
--          of slots; the slots; then for each agent one text, its parts each ended by '|': id,
--          details by slot, keys by board; '' for none
-- returns  1 when written, 0 when the head is another or gone: the boards lost something
local call = redis.call
local head = call('HMGET', KEYS[1], 'gen', 'fence')
if head[1] ~= ARGV[1] or head[2] ~= ARGV[2] then return 0 end
local slots = tonumber(ARGV[4])
local kinds = (#KEYS - 2) / slots
-- By board: keys and agents that are put on it, and agents that are taken off.
local added, dropped = {}, {}
for board = 1, slots * kinds do
  added[board], dropped[board] = {}, {}
end
for at = 5 + slots, #ARGV do
  local parts, names, put, gone = {}, {}, {}, {}
  for value in string.gmatch(ARGV[at], '([^|]*)|') do
    parts[#parts + 1] = value
  end
  local id = parts[1]
  for slot = 1, slots do
    names[slot] = id .. ' ' .. ARGV[4 + slot]
  end
  local had = call('HMGET', KEYS[2], unpack(names))
  for slot = 1, slots do
    local details = parts[1 + slot]
    if details ~= '' then
      put[#put + 1] = names[slot]
      put[#put + 1] = details
    elseif had[slot] then
      gone[#gone + 1] = names[slot]
    end
    if details ~= '' or had[slot] then
      for board = (slot - 1) * kinds + 1, slot * kinds do
        local key, list = parts[1 + slots + board], added[board]
        if key == '' then
          list = dropped[board]
        else
          list[#list + 1] = key
        end
        list[#list + 1] = id
      end
    end
  end
  if #put > 0 then call('HSET', KEYS[2], unpack(put)) end
  if #gone > 0 then call('HDEL', KEYS[2], unpack(gone)) end
end
for board = 1, slots * kinds do
  if #added[board] > 0 then call('ZADD', KEYS[2 + board], unpack(added[board])) end
  if #dropped[board] > 0 then call('ZREM', KEYS[2 + board], unpack(dropped[board])) end
end
call('HSET', KEYS[1], 'fence', ARGV[3])
return 1
