#!lua
-- Reads a page of a board.
-- KEYS     [1] head of the boards (hash: gen, day, fence); the board in generation [2] a, [3] b;
--          details in generation [4] a, [5] b
-- ARGV     [1] the day and [2] the form it must be of; [3] slot; [4] number of rows; [5] rows to
--          skip; or, to go on after a row, [6] its key and [7] its agent
-- returns  false when there are no boards of this day and form, else the total, then for each row: agent,
--          key, rank (equal keys share one), details
local call = redis.call
local head = call('HMGET', KEYS[1], 'gen', 'day', 'form')
if not head[1] or head[2] ~= ARGV[1] or head[3] ~= ARGV[2] then return false end
local is_a = head[1] == 'a'
local board, details = is_a and KEYS[2] or KEYS[3], is_a and KEYS[4] or KEYS[5]
local from = tonumber(ARGV[5])
if ARGV[6] then
  -- Rows with the same key are in the order of their agents: halve until the place is found.
  from = call('ZCOUNT', board, '-inf', '(' .. ARGV[6])
  local to = from + call('ZCOUNT', board, ARGV[6], ARGV[6])
  while from < to do
    local middle = math.floor((from + to) / 2)
    if call('ZRANGE', board, middle, middle)[1] <= ARGV[7] then
      from = middle + 1
    else
      to = middle
    end
  end
end
local rows = call('ZRANGE', board, from, from + ARGV[4] - 1, 'WITHSCORES')
local page, key, rank = { call('ZCARD', board) }, nil, nil
for n = 1, #rows, 2 do
  if rows[n + 1] ~= key then
    key = rows[n + 1]
    rank = n == 1 and call('ZCOUNT', board, '-inf', '(' .. key) + 1 or from + (n + 1) / 2
  end
  page[#page + 1], page[#page + 2], page[#page + 3] = rows[n], key, rank
  local places = call('HGET', details, rows[n]) or ''
  local _, slot_end = string.find(places, '|' .. ARGV[3] .. '|', 1, true)
  page[#page + 1] = slot_end and string.match(places, '^[^|]*', slot_end + 1) or ''
end
return page
