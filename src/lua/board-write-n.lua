#!lua
-- Puts agents where they now stand on the boards, all boards at once.
-- KEYS     [1] head of the boards (hash: gen, day, fence), or of those being made; [2] their details
--          (hash: '<agent> <slot>'); then the boards (sorted sets of agent by key)
-- ARGV     [1] generation; [2] fence it must stand at; [3] fence it stands at afterwards; [4] number
--          of slots; the slots; then for each agent one text, its parts each ended by '|': id,
--          details by slot, keys by board; '' for none
-- returns  1 when written, 0 when the head is another or gone: the boards lost something
local call = redis.call
local head = call('HMGET', KEYS[1], 'gen', 'fence')
if head[1] ~= ARGV[1] or head[2] ~= ARGV[2] then return 0 end
local slots = tonumber(ARGV[4])
for at = 5 + slots, #ARGV do
  local id, part = nil, -1
  for value in string.gmatch(ARGV[at], '([^|]*)|') do
    part = part + 1
    if part == 0 then
      id = value
    elseif part > slots then
      local board = KEYS[2 + part - slots]
      if value == '' then
        call('ZREM', board, id)
      else
        call('ZADD', board, value, id)
      end
    elseif value == '' then
      call('HDEL', KEYS[2], id .. ' ' .. ARGV[4 + part])
    else
      call('HSET', KEYS[2], id .. ' ' .. ARGV[4 + part], value)
    end
  end
end
call('HSET', KEYS[1], 'fence', ARGV[3])
return 1
