"""How a follower pulls from its leaders: one connection, one fetch session and one loop of callbacks for each of
them."""
