-- sysbench: statements that do nothing, so that what is left is the protocol.
function thread_init()
  connection = sysbench.sql.driver():connect()
end

function event()
  connection:query("DO 1")
end

function thread_done()
  connection:disconnect()
end
