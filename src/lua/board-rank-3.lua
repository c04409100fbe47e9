#!lua
-- Reads which rank a key has on a board.
-- KEYS     [1] head of the boards (hash: gen, day, fence); the board in generation [2] a, [3] b
-- ARGV     [1] the key; [2] the form it must be of
-- returns  false when there are no boards of this form, else the rank: 1 and as many as have a lower key
local head = redis.call('HMGET', KEYS[1], 'gen', 'form')
if not head[1] or head[2] ~= ARGV[2] then return false end
return redis.call('ZCOUNT', head[1] == 'a' and KEYS[2] or KEYS[3], '-inf', '(' .. ARGV[1]) + 1
