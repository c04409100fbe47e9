#!lua
-- Reads a page of a board.
-- KEYS     [1] head of the boards (hash: gen, day, fence); the board in generation [2] a, [3] b;
--          details in generation [4] a, [5] b
-- ARGV     [1] the day it must be of; [2] slot; [3] number of rows; [4] rows to skip; or, to go on
--          after a row, [5] its key and [6] its agent
-- returns  false when there are no boards of this day, else the total, then for each row: agent,
--          key, rank (equal keys share one), details
local call = redis.call
local head = call('HMGET', KEYS[1], 'gen', 'day')
if not head[1] or head[2] ~= ARGV[1] then return false end
local is_a = head[1] == 'a'
local board, details = is_a and KEYS[2] or KEYS[3], is_a and KEYS[4] or KEYS[5]
local from = tonumber(ARGV[4])
if ARGV[5] then
  -- Rows with the same key are in the order of their agents: halve until the place is found.
  from = call('ZCOUNT', board, '-inf', '(' .. ARGV[5])
  local to = from + call('ZCOUNT', board, ARGV[5], ARGV[5])
  while from < to do
    local middle = math.floor((from + to) / 2)
    if call('ZRANGE', board, middle, middle)[1] <= ARGV[6] then
      from = middle + 1
    else
      to = middle
    end
  end
end
local rows = call('ZRANGE', board, from, from + ARGV[3] - 1, 'WITHSCORES')
local page, key, rank = { call('ZCARD', board) }, nil, nil
for n = 1, #rows, 2 do
  if rows[n + 1] ~= key then
    key = rows[n + 1]
    rank = n == 1 and call('ZCOUNT', board, '-inf', '(' .. key) + 1 or from + (n + 1) / 2
  end
  page[#page + 1], page[#page + 2], page[#page + 3] = rows[n], key, rank
  local places = call('HGET', details, rows[n]) or ''
  local _, slot_end = string.find(places, '|' .. ARGV[2] .. '|', 1, true)
  page[#page + 1] = slot_end and string.match(places, '^[^|]*', slot_end + 1) or ''
end
return page
