#!lua
-- Reads a page of the board of debaters.
-- KEYS     [1] state of the board; [2] its order (sorted set of '<rest>:<agent>', all at score 0);
--          [3] its rows (hash by agent)
-- ARGV     [1] where to begin: '-', or '(' and the member it goes on after; [2] rows to skip;
--          [3] number of rows
-- returns  false while there is no whole board, else the total, then for each row: agent, rank
--          (equal upvotes share one), row
local call = redis.call
if not string.match(call('GET', KEYS[1]) or '', '^%d+$') then return false end
local members = call('ZRANGEBYLEX', KEYS[2], ARGV[1], '+', 'LIMIT', ARGV[2], ARGV[3])
local page, rest, rank = { call('ZCARD', KEYS[2]) }, nil, nil
for _, member in ipairs(members) do
  local id = string.sub(member, 12)
  if string.sub(member, 1, 11) ~= rest then
    rest = string.sub(member, 1, 11)
    rank = call('ZLEXCOUNT', KEYS[2], '-', '(' .. rest) + 1
  end
  page[#page + 1], page[#page + 2] = id, rank
  page[#page + 1] = call('HGET', KEYS[3], id) or '0 0 0'
end
return page
