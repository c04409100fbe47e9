#!lua
-- Puts debaters where they now stand.
-- KEYS     [1] state of the board; [2] its order (sorted set of '<rest>:<agent>', all at score 0);
--          [3] its rows (hash of '<upvotes> <comments> <replies>' by agent)
-- ARGV     [1] state it must have; [2] state it has afterwards; then for each agent: id, its member
--          of the order, its row; both empty for who is not on the board
-- returns  1 when written, 0 when the state is another: the board lost something
local call = redis.call
if (call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
for at = 3, #ARGV, 3 do
  local id, member, row = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local old = call('HGET', KEYS[3], id)
  local stood = ''
  if old then
    local rest = string.format('%010d', 9999999999 - tonumber(string.match(old, '^%d+')))
    stood = rest .. ':' .. id
  end
  if row == '' then
    call('HDEL', KEYS[3], id)
  else
    call('HSET', KEYS[3], id, row)
  end
  -- Most of what changes leaves an agent where it stood.
  if stood ~= member then
    if stood ~= '' then call('ZREM', KEYS[2], stood) end
    if member ~= '' then call('ZADD', KEYS[2], 0, member) end
  end
end
call('SET', KEYS[1], ARGV[2])
return 1
