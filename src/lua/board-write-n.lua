#!lua
-- Moves agents on the boards, all boards at once. The caller has compared with what the details
-- said at this fence, and names only what changes.
-- KEYS     [1] head of the boards (hash: gen, day, fence), or of those being made; [2] their
--          details (hash: agent to its places); then the boards that change (sorted sets of agent
--          by key)
-- ARGV     [1] generation; [2] fence it must stand at; [3] fence it stands at afterwards; [4] as
--          JSON, for the details and then for each board, two lists: what is put (agents and their
--          places; keys and their agents), and the agents that are taken off
-- returns  1 when written, 0 when the head is another or gone: the boards lost something
local call = redis.call
local head = call('HMGET', KEYS[1], 'gen', 'fence')
if head[1] ~= ARGV[1] or head[2] ~= ARGV[2] then return 0 end
for n, change in ipairs(cjson.decode(ARGV[4])) do
  local put, gone = change[1], change[2]
  if #put > 0 then call(n == 1 and 'HSET' or 'ZADD', KEYS[n + 1], unpack(put)) end
  if #gone > 0 then call(n == 1 and 'HDEL' or 'ZREM', KEYS[n + 1], unpack(gone)) end
end
call('HSET', KEYS[1], 'fence', ARGV[3])
return 1
