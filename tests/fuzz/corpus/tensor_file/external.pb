Bej
locationw.binj
offset0j
length24p