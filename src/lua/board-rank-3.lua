#!lua
-- Reads which rank a key has on a board.
-- KEYS     [1] head of the boards (hash: gen, day, fence); the board in generation [2] a, [3] b
-- ARGV     [1] the key
-- returns  false when there are no boards, else the rank: 1 and as many as have a lower key
local gen = redis.call('HGET', KEYS[1], 'gen')
if not gen then return false end
return redis.call('ZCOUNT', gen == 'a' and KEYS[2] or KEYS[3], '-inf', '(' .. ARGV[1]) + 1
