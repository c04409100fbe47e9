#!lua
-- Makes the boards that were built the ones that are read.
-- KEYS     [1] head of the boards (hash: gen, day, fence); [2] head of those that were built
-- ARGV     [1] generation; [2] fence it must stand at
-- returns  1 when done, 0 when what was built is another or gone
local built = redis.call('HMGET', KEYS[2], 'gen', 'fence')
if built[1] ~= ARGV[1] or built[2] ~= ARGV[2] then return 0 end
redis.call('RENAME', KEYS[2], KEYS[1])
return 1
